"""Record what torch.compile does, from the compilations that the program triggers anyway.

    torch ──(trace events, hooked functions)──► collectors ──► tap ──► journals ──► assemble ──► Inspection

`torch_private` is the only package that uses torch's private parts. Collectors immediately convert what they receive into small
events that can be written as JSON, and keep no torch objects alive. `compile_inspect.assemble` interprets the events later,
without torch and outside the user's compile time.
"""
