class Config:
    def describe(self):
        return 'a config'

def f(x, config=Config(), strict=True):
    if x.sum() < 0:
        if strict:
            raise ValueError(config.describe())
        x = x * 2
    elif x.sum() > 1:
        x = x + 1
    return x

# becomes

class Config:
    def describe(self):
        return 'a config'

def f(x, config=Config(), strict=True):
    text = config.describe()
    if x.sum() < 0:
        if strict:
            raise ValueError(text)
        x = x * 2
    elif x.sum() > 1:
        x = x + 1
    return x
