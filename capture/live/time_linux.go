package live

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hardwareTime asks the adapter for timestamps of all packets. It returns a remark on the result.
func (r *ring) hardwareTime(keep bool) string {
	if r.index == 0 {
		return "any: an adapter's timestamps need interfaces by name; the times come from the system's clock"
	}
	soft := func(format string, args ...any) string {
		return fmt.Sprintf("%s: no timestamps of the adapter: "+format+"; the times come from the system's clock", append([]any{r.name}, args...)...)
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return soft("%v", err)
	}
	defer unix.Close(s)
	info, err := unix.IoctlGetEthtoolTsInfo(s, r.name)
	if err != nil {
		return soft("%v", err)
	}
	if info.So_timestamping&unix.SOF_TIMESTAMPING_RAW_HARDWARE == 0 || info.Rx_filters&(1<<unix.HWTSTAMP_FILTER_ALL) == 0 {
		return soft("it has none for all packets")
	}
	old, err := unix.IoctlGetHwTstamp(s, r.name)
	if err != nil {
		old = &unix.HwTstampConfig{}
	}
	kept := ""
	if old.Rx_filter != unix.HWTSTAMP_FILTER_ALL {
		want := *old
		want.Rx_filter = unix.HWTSTAMP_FILTER_ALL
		if err := unix.IoctlSetHwTstamp(s, r.name, &want); err != nil {
			return soft("%v (it needs CAP_NET_ADMIN)", err)
		}
		if keep {
			kept = fmt.Sprintf("; the adapter goes on stamping all packets afterwards: hwstamp_ctl -i %s -r %d sets it back", r.name, old.Rx_filter)
		} else {
			r.undo = func() {
				if s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
					_ = unix.IoctlSetHwTstamp(s, r.name, old)
					unix.Close(s)
				}
			}
		}
	}
	if err := unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_TIMESTAMP, unix.SOF_TIMESTAMPING_RAW_HARDWARE); err != nil {
		return soft("%v", err)
	}
	return fmt.Sprintf("%s: packets that come in have the time of the adapter, those that leave the time of the system%s", r.name, kept)
}
