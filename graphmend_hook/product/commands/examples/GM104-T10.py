def f(x, share=1.0):
    number = np.random.uniform()
    if number ** 2 < share:
        x = x * 2
    return x

# becomes

def f(x, share=1.0):
    number = torch.rand(())
    if number ** 2 < share:
        x = x * 2
    return x
