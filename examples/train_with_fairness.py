"""Train a small network under a fairness constraint: all groups get the same mean score, or nearly.

The data are generated here: people of three groups, and a feature that reveals much about the group and little about the
outcome, so that an ordinary classifier scores the groups differently. The disparity is the largest mean score of a group
minus the smallest, and may be at most 0.02. It has a kink wherever two groups tie, and that is where the constraint drives
them. As a single constraint it can be solved, but takes five times as many evaluations. So the constraints are the
differences of all pairs of groups, which are smooth. They apply to the scores on the training data; the output also shows
decisions, and people that are not in the training data.

    python examples/train_with_fairness.py
"""

import torch
from torch.nn.functional import softplus

from nonsmooth import minimize

MAX_DISPARITY = 0.02


def draw(count, seed):
    """Features, outcomes and groups."""
    generator = torch.Generator().manual_seed(seed)
    group = torch.randint(0, 3, (count,), generator=generator)
    merit = torch.randn(count, 2, generator=generator, dtype=torch.float64)
    noise = torch.randn(count, 2, generator=generator, dtype=torch.float64)
    outcome = (merit.sum(dim=1) + 0.5 * group + 0.7 * noise[:, 0] > 0.4).double()
    address = group + 0.4 * noise[:, 1]  # reveals the group
    return torch.cat([merit, address[:, None]], dim=1), outcome, group


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(3, 4, dtype=torch.float64)
        self.output = torch.nn.Linear(4, 1, dtype=torch.float64)

    def forward(self, features):
        return self.output(torch.tanh(self.hidden(features))).squeeze(-1)


def loss(model, features, outcomes):
    """The logistic loss, with a little weight decay so that the best weights are finite."""
    logits = model(features)
    decay = sum(parameter.square().sum() for parameter in model.parameters())
    return (softplus(logits) - outcomes * logits).mean() + 1e-3 * decay


def mean_scores(scores, groups):
    return torch.stack([scores[groups == group].mean() for group in range(3)])


def disparity(scores, groups):
    means = mean_scores(scores, groups)
    return means.max() - means.min()


def show(name, model, data):
    features, outcomes, groups = data
    with torch.no_grad():
        scores = torch.sigmoid(model(features))
    decisions = (scores > 0.5).double()
    accuracy = (decisions == outcomes).double().mean().item()
    print(
        f"{name:24} accuracy {accuracy:.3f}  disparity of scores {disparity(scores, groups).item():.4f}"
        f"  of decisions {disparity(decisions, groups).item():.4f}"
    )


def main():
    training, unseen = draw(1500, seed=1), draw(5000, seed=2)
    features, outcomes, groups = training

    torch.manual_seed(0)
    model = Classifier()
    free = minimize(lambda model: loss(model, features, outcomes), model)
    print(f"without the constraint: {free.status.name}, loss {free.f:.5f}")
    show("  trained on", model, training)
    show("  unseen", model, unseen)

    def fair(model):
        """All differences between two groups: they are smooth, but their maximum is not."""
        means = mean_scores(torch.sigmoid(model(features)), groups)
        return loss(model, features, outcomes), means[:, None] - means - MAX_DISPARITY, None

    constrained = minimize(fair, model)  # starts where the unconstrained run ended
    print(f"\nwith the constraint: {constrained.status.name}, loss {constrained.f:.5f}")
    show("  trained on", model, training)
    show("  unseen", model, unseen)
    print(f"  violation {constrained.violation:.1e}, multiplier {constrained.multipliers.inequalities.sum().item():.4f}")
    print(f"  certificate: {constrained.certificate}")
    print(f"\nThe constraint costs {constrained.f - free.f:.5f} of the loss.")


if __name__ == "__main__":
    main()
