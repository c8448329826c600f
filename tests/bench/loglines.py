"""Lines of a log, for those who write long ones. `when` is of event(); `size` is all in one place."""


def start(memory, policy=""):
    return ('{"v":1,"kind":"start","t":0.000000,"time":"2026-11-21T03:50:51.123456Z","boot":"b","host":"node7","pid":4711,"ppid":1,'
            '"program":"train.py","exe":"/usr/bin/python3","version":"0.1.0","backend":"cuda","driver":13000,'
            f'"devices":[{{"dev":0,"name":"simulated","uuid":"GPU-0","bytes":{memory}}}],"policy":[{policy}],"args":["train.py","--epochs","3"]}}\n')


def event(time, seq, order, thread):
    """Time: as text."""
    return f'"t":{time},"seq":{seq},"order":{order},"tid":{thread}'


def alloc(when, caller, size, pointer, spilled=False):
    place, reason = ("host", "oom") if spilled else ("device", "fits")
    return (f'{{"v":1,"kind":"alloc",{when},"dev":0,"api":"cudaMalloc","caller":"{caller}","bytes":{size},"ptr":"{pointer:#x}",'
            f'"place":"{place}","{place}_bytes":{size},"reason":"{reason}","rule":"default","us":12}}\n')


def free(when, caller, size, pointer, spilled=False):
    return (f'{{"v":1,"kind":"free",{when},"dev":0,"api":"cudaFree","caller":"{caller}","bytes":{size},"ptr":"{pointer:#x}",'
            f'"place":"{"host" if spilled else "device"}","reason":"free","us":3}}\n')
