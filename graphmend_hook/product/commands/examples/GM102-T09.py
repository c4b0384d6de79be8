class Model(torch.nn.Module):
    @property
    def last(self):
        return self.kept

    @last.setter
    def last(self, value):
        self.kept = value

    def forward(self, x):
        self.kept = x
        if x.sum() > 0:
            self.last = x + 1
        return self.kept * 2

f = Model()

# becomes

class Model(torch.nn.Module):
    def forward(self, x):
        self.kept = x
        if x.sum() > 0:
            self.kept = x + 1
        return self.kept * 2

f = Model()
