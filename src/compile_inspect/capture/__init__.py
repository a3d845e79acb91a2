"""Recording what torch.compile does, from the compilation that happens anyway.

    torch ──(trace events, observed functions)──► collectors ──► tap ──► journals ──► assemble ──► Inspection

`torch_private` is the only module that touches torch's private parts. Collectors turn what they see into
small JSON-able events at once and keep nothing of torch alive; all interpretation happens later, in
`compile_inspect.assemble`, without torch and outside the user's compile time.
"""
