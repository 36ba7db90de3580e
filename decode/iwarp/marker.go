package iwarp

import "encoding/binary"

// Markers, RFC 5044 4.3. A marker is 2 reserved bytes and the FPDU pointer: the
// distance in the stream from the ULPDU length field back from the marker, or 0
// if the marker stands right before that field.
const (
	MarkerLen      = 4
	MarkerInterval = 512
	markerData     = MarkerInterval - MarkerLen // stream bytes between two markers
)

// MarkedLen is the number of stream bytes that n bytes take with markers, if the first of them is at pos,
// counted from the first byte of the first FPDU's marker. A marker at pos itself counts. One directly after
// the end does not: it belongs to the next FPDU.
func MarkedLen(pos uint64, n int) int {
	if n == 0 {
		return 0
	}
	room, markers := markerData, 1
	if r := int(pos % MarkerInterval); r != 0 {
		room, markers = MarkerInterval-r, 0
	}
	if n > room {
		markers += (n - room + markerData - 1) / markerData
	}
	return n + markers*MarkerLen
}

// RemoveMarkers appends raw without its markers to dst; raw starts at stream position pos. An incomplete
// marker at an end of raw is dropped, too.
func RemoveMarkers(dst, raw []byte, pos uint64) []byte {
	for len(raw) > 0 {
		r := int(pos % MarkerInterval)
		if r < MarkerLen {
			skip := min(MarkerLen-r, len(raw))
			raw, pos = raw[skip:], pos+uint64(skip)
			continue
		}
		n := min(MarkerInterval-r, len(raw))
		dst = append(dst, raw[:n]...)
		raw, pos = raw[n:], pos+uint64(n)
	}
	return dst
}

// AppendMarkedFPDU appends the FPDU of a ULPDU to dst, with markers. pos is its position in the stream of
// FPDUs: the number of preceding bytes in this direction, including markers. The next FPDU's position is pos
// plus the number of bytes appended.
func AppendMarkedFPDU(dst, ulpdu []byte, crc bool, pos uint64) []byte {
	start := len(dst)
	header := pos // of the ULPDU length field
	if pos%MarkerInterval == 0 {
		header += MarkerLen
	}
	put := func(p []byte) {
		for len(p) > 0 {
			at := pos + uint64(len(dst)-start)
			r := int(at % MarkerInterval)
			if r == 0 {
				distance := uint16(0)
				if at > header {
					distance = uint16(at - header)
				}
				dst = binary.BigEndian.AppendUint32(dst, uint32(distance))
				continue
			}
			n := min(MarkerInterval-r, len(p))
			dst, p = append(dst, p[:n]...), p[n:]
		}
	}
	// put copes with r in 1–3 as if no marker were under way; positions are
	// multiples of 4, because every FPDU is.
	length := [2]byte{byte(len(ulpdu) >> 8), byte(len(ulpdu))}
	var pad, sum [4]byte
	put(length[:])
	put(ulpdu)
	put(pad[:-(FPDUHeaderLen+len(ulpdu))&3])
	if (pos+uint64(len(dst)-start))%MarkerInterval == 0 {
		// A marker between pad and CRC is inside the FPDU: the CRC covers it.
		dst = binary.BigEndian.AppendUint32(dst, uint32(pos+uint64(len(dst)-start)-header))
	}
	if crc {
		binary.LittleEndian.PutUint32(sum[:], checksum(dst[start:]))
	}
	return append(dst, sum[:]...)
}
