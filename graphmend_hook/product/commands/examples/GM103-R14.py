class Config:
    def describe(self):
        return 'a config'

def f(x, config=Config(), strict=True):
    if x.sum() < 0:
        if strict:
            raise ValueError(config.describe())
    return x + 1

# becomes

class Config:
    def describe(self):
        return 'a config'

def f(x, config=Config(), strict=True):
    text = config.describe()
    if x.sum() < 0:
        if strict:
            raise ValueError(text)
    return x + 1
