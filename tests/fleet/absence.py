# not a test
def absences(*_):
    pass
