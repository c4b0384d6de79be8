class Config:
    size = 3

config = Config()

def f(x):
    logger.info('%s', config)
    return x + 1

# becomes

class Config:
    size = 3

config = Config()
text = str(config)

def f(x):
    logger.info('%s', text)
    return x + 1
