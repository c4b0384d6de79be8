class Log:
    def info(self, text):
        sys.stderr.write(text)

log = Log()

def f(x):
    log.info('in f')
    return x + 1

# becomes

def f(x):
    logger.info('in f')
    return x + 1
