class Model(torch.nn.Module):
    scale = 1.0

    def forward(self, x):
        if x.sum() > 0:
            self.scale = 2.0
        return x * 2

f = Model()

# becomes

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 1.0

    def forward(self, x):
        if x.sum() > 0:
            self.scale = 2.0
        return x * 2

f = Model()
