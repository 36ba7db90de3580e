package ibcm

import "time"

// MTUBytes is the path MTU that a code stands for, in bytes: 256, 512, 1024,
// 2048 or 4096 for codes 1 to 5, else 0.
func MTUBytes(code uint8) uint32 {
	if code < 1 || code > 5 {
		return 0
	}
	return 128 << code
}

// MTUCode is the code of a path MTU in bytes, 0 if there is none.
func MTUCode(mtu uint32) uint8 {
	for code := uint8(1); code <= 5; code++ {
		if 128<<code == mtu {
			return code
		}
	}
	return 0
}

// Timeout is the time that an exponent of five bits stands for: 4.096 µs·2^e.
// As the ACK timeout of a queue pair, exponent 0 means no timeout at all.
func Timeout(exponent uint8) time.Duration {
	return 4096 * time.Nanosecond << (exponent & 31)
}

// Transport is the service of the connection that a REQ asks for.
type Transport uint8

// Transports. XRC is an extended type; see REQ.Transport.
const (
	TransportRC Transport = iota
	TransportUC
	TransportRD
	TransportExtended // and none that is known
	TransportXRC
)

var transportNames = [...]string{"RC", "UC", "RD", "extended", "XRC"}

// String is "RC", "UC", "RD", "XRC" or "extended".
func (t Transport) String() string {
	if int(t) < len(transportNames) {
		return transportNames[t]
	}
	return transportNames[TransportExtended]
}

const (
	transportCodeExtended = 3
	extendedXRC           = 1
)
