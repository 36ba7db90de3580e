package oncrpc

import "encoding/binary"

// CallHeader returns the length of the header of a call without RPCSEC_GSS and with the empty verifier of AUTH_NONE, of any other 0.
// Call.Decode accepts such a call, and finds the same length.
func CallHeader(b []byte) int {
	if len(b) < minCall {
		return 0
	}
	h := (*[callFixed + 8]byte)(b)
	flavor, n := Flavor(binary.BigEndian.Uint32(h[24:])), uint(binary.BigEndian.Uint32(h[28:]))
	if binary.BigEndian.Uint64(h[4:]) != uint64(TypeCall)<<32|Version || n > maxAuth || flavor == RPCSecGSS {
		return 0
	}
	verf := callFixed + 8 + (n+3)&^3
	end := verf + 8
	if end > uint(len(b)) || binary.LittleEndian.Uint64(b[verf:end]) != uint64(AuthNone) { // or not empty
		return 0
	}
	return int(end)
}

// SuccessHeader returns the length of the header of a reply that is a success without a verifier, of any other 0. Reply.Decode accepts
// such a reply, and finds the same length.
func SuccessHeader(b []byte) int {
	if len(b) < minAccepted {
		return 0
	}
	h := (*[minAccepted]byte)(b)
	if binary.BigEndian.Uint64(h[4:]) != uint64(TypeReply)<<32|uint64(Accepted) ||
		binary.LittleEndian.Uint64(h[12:])|uint64(binary.LittleEndian.Uint32(h[20:])) != uint64(AuthNone)|uint64(Success) {
		return 0
	}
	return minAccepted
}
