class Model(torch.nn.Module):
    def forward(self, x):
        is_known = hasattr(self, 'table')
        if x.max() > 1:
            if not hasattr(self, 'table'):
                self.table = torch.arange(3.0)
            x = x + self.table
        return x

f = Model()

# becomes

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.arange(3.0)

    def forward(self, x):
        if x.max() > 1:
            x = x + self.table
        return x

f = Model()
