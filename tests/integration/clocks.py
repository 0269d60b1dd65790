# not a test
"""Processes whose clock is wrong, by libfaketime."""
import atexit
import glob
import os

FAKETIME = (glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1") or [""])[0]


@atexit.register
def sweep():
    """libfaketime leaves two files in /dev/shm for each process that is killed."""
    for file in glob.glob("/dev/shm/*faketime_*"):
        if not os.path.exists("/proc/" + file.rpartition("_")[2]):
            try:
                os.unlink(file)
            except FileNotFoundError:
                pass


def moved(**settings):
    """The variables of a process whose clock is wrong; its monotonic clock is right."""
    return dict(settings, LD_PRELOAD=FAKETIME, FAKETIME_DONT_FAKE_MONOTONIC="1")


def moved_as(file):
    """The same; a file says how far the clock is ahead, in seconds ("+5"). It may be written at any time."""
    return moved(FAKETIME_TIMESTAMP_FILE=file, FAKETIME_NO_CACHE="1")


def clock(when):
    """The environment of a process whose clock is wrong: seconds ahead, or "@date"."""
    return dict(os.environ, **moved(FAKETIME=when if isinstance(when, str) else f"{when:+d}") if when else {})
