"""A train loop of accelerate's, with the model compiled by it."""

import torch
import torch_counters
from accelerate import Accelerator
from accelerate.utils import DynamoBackend, TorchDynamoPlugin

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, dynamo_plugin=TorchDynamoPlugin(backend=DynamoBackend.AOT_EAGER))
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 4), torch.zeros(8, 1)), batch_size=4)
model, optimizer, data = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1), data)
for x, y in data:
    loss = torch.nn.functional.mse_loss(model(x), y)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
print("done")
torch_counters.write()
