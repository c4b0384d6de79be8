@torch.compiler.nested_compile_region
def block(x):
    print('in the block')
    return x + 1

def f(x):
    return block(x)

# becomes

@torch.compiler.nested_compile_region
def block(x):
    return x + 1

def f(x):
    print('in the block')
    return block(x)
