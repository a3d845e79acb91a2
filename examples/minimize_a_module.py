"""Minimize over the parameters of a module under equalities: the subspace in which a matrix is largest.

Among all matrices V with orthonormal columns, trace(VᵀAV) is largest for the eigenvectors of the largest eigenvalues of
A, so the answer can be compared with an eigenvalue solver. The second part has outliers in the data and a nonsmooth
objective, the sum of distances, for which there is no such solver.

    python examples/minimize_a_module.py
"""

import torch

from nonsmooth import minimize


class Subspace(torch.nn.Module):
    def __init__(self, size, dimensions):
        super().__init__()
        self.basis = torch.nn.Parameter(torch.linalg.qr(torch.randn(size, dimensions, dtype=torch.float64)).Q)

    def captured(self, matrix):
        return torch.trace(self.basis.T @ matrix @ self.basis)

    def distances(self, points):
        return (points - points @ self.basis @ self.basis.T).norm(dim=1)

    def deviation(self):
        identity = torch.eye(self.basis.shape[1], dtype=self.basis.dtype)
        products = self.basis.T @ self.basis - identity
        rows, columns = torch.triu_indices(*products.shape)
        return products[rows, columns]  # symmetric: each equality once


def main():
    torch.manual_seed(0)
    points = torch.randn(60, 6, dtype=torch.float64) * torch.tensor([4.0, 3.0, 0.5, 0.5, 0.5, 0.5])
    covariance = points.T @ points / len(points)

    # The function gets the module; the answer is the same module with the best parameters.
    result = minimize(lambda space: (-space.captured(covariance), None, {"basis": space.deviation()}), Subspace(6, 2))
    expected = torch.linalg.eigvalsh(covariance)[-2:].sum().item()
    print(result)
    print(f"trace {-result.f:.10f}, by eigenvalues {expected:.10f}")
    assert result.success and abs(-result.f - expected) < 1e-6 * expected

    # Three distant points attract the squares strongly, but hardly affect the distances.
    contaminated = torch.cat([points, torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 20.0], dtype=torch.float64).repeat(3, 1)])
    plain = torch.linalg.eigh(contaminated.T @ contaminated).eigenvectors[:, -2:]
    robust = minimize(
        lambda space, data: (space.distances(data).sum(), None, {"basis": space.deviation()}),
        Subspace(6, 2),
        args=(contaminated,),
    )
    truth = torch.linalg.eigh(covariance).eigenvectors[:, -2:]
    for name, basis in (("squares", plain), ("distances", robust.x.basis.detach())):
        cosine = torch.linalg.svdvals(truth.T @ basis).min().item()
        print(f"smallest cosine to the subspace without outliers, by {name}: {cosine:.3f}")
    assert robust.success and cosine > 0.99
    print(f"{robust.status.name} after {robust.iterations} iterations")


if __name__ == "__main__":
    main()
