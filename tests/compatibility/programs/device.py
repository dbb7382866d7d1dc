"""A device and what it says of itself."""

from cuda.core import Device
from outcome import attempt, show

device = Device(0)
show(
    id=device.device_id,
    index=int(device),
    same=Device(0) == device,
    hash=hash(Device(0)) == hash(device),
    name=isinstance(device.name, str),
    uuid=isinstance(device.uuid, str) and len(device.uuid),
    capability=isinstance(device.compute_capability, tuple) and len(device.compute_capability),
    arch=device.arch == "".join(map(str, device.compute_capability)),
    many=[d.device_id for d in Device.get_all_devices()][:1],
    default=Device().device_id,
)
for name, value in (("negative", -1), ("beyond", 1000), ("text", "0"), ("float", 1.5)):
    show(**{name: attempt(lambda value=value: Device(value).device_id)})
