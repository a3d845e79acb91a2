"""Robust principal component analysis: split a matrix into a low-rank matrix and a sparse matrix.

The observed matrix is the sum of a matrix of rank 1 and of gross errors in some entries. Minimizing the nuclear norm of
the first part plus the 1-norm of the second, with equalities that make both add up to the observed matrix, recovers the
parts. Both norms have kinks exactly at the answer: singular values and entries that are 0. The data are generated here, so
the answer can be compared with the true parts, and with an ordinary truncated singular value decomposition.

    python examples/robust_pca.py
"""

import torch

from nonsmooth import minimize

ROWS, COLUMNS, RANK, ERRORS = 12, 15, 1, 9


def draw():
    """A matrix of low rank, and gross errors in a few entries."""
    torch.manual_seed(0)
    low = torch.randn(ROWS, RANK, dtype=torch.float64) @ torch.randn(RANK, COLUMNS, dtype=torch.float64)
    sparse = torch.zeros(ROWS * COLUMNS, dtype=torch.float64)
    sparse[torch.randperm(len(sparse))[:ERRORS]] = 5 * torch.randn(ERRORS, dtype=torch.float64)
    return low, sparse.reshape(ROWS, COLUMNS)


def parts(variables, observed):
    """Objective, inequalities, equalities. The weight is the usual one, 1/√(larger side)."""
    low, sparse = variables["low"], variables["sparse"]
    weight = 1 / max(observed.shape) ** 0.5
    return torch.linalg.matrix_norm(low, ord="nuc") + weight * sparse.abs().sum(), None, low + sparse - observed


def error(estimate, truth):
    return ((estimate - truth).norm() / truth.norm()).item()


def main():
    low, sparse = draw()
    observed = low + sparse
    start = {"low": observed.clone(), "sparse": torch.zeros_like(observed)}
    result = minimize(parts, start, args=(observed,))
    print(result)

    left, values, right = torch.linalg.svd(observed)
    truncated = left[:, :RANK] * values[:RANK] @ right[:RANK]
    answer = result.x
    print(f"\nrelative error of the low-rank part, truncated SVD: {error(truncated, low):.1e}")
    print(f"relative error of the low-rank part, found here:    {error(answer['low'], low):.1e}")
    print(f"relative error of the sparse part, found here:      {error(answer['sparse'], sparse):.1e}")
    rank = (torch.linalg.svdvals(answer["low"]) > 1e-4).sum().item()
    wrong = ((answer["sparse"].abs() > 1e-4) != (sparse != 0)).sum().item()
    print(f"rank {rank} (truth {RANK}); {wrong} of {sparse.numel()} entries wrongly classified as correct or corrupted")
    print(f"objective {result.f:.8f}, at the truth {parts({'low': low, 'sparse': sparse}, observed)[0].item():.8f}")

    # The equalities determine the sparse part. Without it there are half as many variables and no constraints.
    shorter = minimize(lambda low: parts({"low": low, "sparse": observed - low}, observed)[0], observed.clone())
    print(f"\nwithout equalities: {shorter.status.name}, objective {shorter.f:.8f}, relative error {error(shorter.x, low):.1e}")
    print(f"seconds: {result.time.total:.1f} with equalities, {shorter.time.total:.1f} without")


if __name__ == "__main__":
    main()
