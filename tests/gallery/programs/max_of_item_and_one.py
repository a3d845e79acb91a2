"""A count that must not be zero, as many losses for detection have it."""

import torch


class Loss(torch.nn.Module):
    def forward(self, scores, labels):
        positive = labels > 0
        count = max(positive.sum().item(), 1)  # <- break
        losses = torch.where(positive, -scores.sigmoid().log(), scores.square())
        return losses.sum() / count


target = Loss()


def inputs():
    return (torch.randn(3, 5, requires_grad=True), torch.arange(15).view(3, 5) % 4)


EXPECTED = {"fixer": "scalars", "proven": ["Leave the number in its tensor, without a gradient"]}
