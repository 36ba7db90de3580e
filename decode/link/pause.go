package link

import "encoding/binary"

// MAC control frames (IEEE 802.3, clause 31): a receiver asks its link partner not to
// send for a while.
//
//	opcode 16 | PAUSE (0x0001):  pause time 16
//	          | PFC   (0x0101):  priority enable vector 16, of it the low byte | pause time 16, eight times
const (
	etherMACControl = 0x8808
	opcodePause     = 0x0001 // IEEE 802.3, annex 31B
	opcodePFC       = 0x0101 // IEEE 802.1Qbb, annex 31D of IEEE 802.3
	pauseSize       = 20     // of PFC
)

// Pause is a PAUSE frame, or one of priority-based flow control.
type Pause struct {
	// PerPriority is false for PAUSE, which stops all priorities alike.
	PerPriority bool
	// Priorities are those that it speaks of, bit 0 for priority 0.
	Priorities uint8
	// Quanta is for how long each is stopped, in units of 512 bit times: 0 resumes.
	Quanta [8]uint16
}

// Decode reads a MAC control frame from its opcode on. It returns false for other
// frames, and if the capture cut it.
func (p *Pause) Decode(b []byte) bool {
	*p = Pause{}
	if len(b) < 4 {
		return false
	}
	switch binary.BigEndian.Uint16(b) {
	case opcodePause:
		p.Priorities = 0xff
		for i := range p.Quanta {
			p.Quanta[i] = binary.BigEndian.Uint16(b[2:])
		}
		return true
	case opcodePFC:
		if len(b) < pauseSize {
			return false
		}
		p.PerPriority, p.Priorities = true, b[3]
		for i := range p.Quanta {
			if p.Priorities&(1<<i) != 0 { // what is not enabled has no meaning
				p.Quanta[i] = binary.BigEndian.Uint16(b[4+2*i:])
			}
		}
		return true
	}
	return false
}

// Append appends the frame from its opcode on, without padding.
func (p *Pause) Append(b []byte) []byte {
	if !p.PerPriority {
		b = binary.BigEndian.AppendUint16(b, opcodePause)
		return binary.BigEndian.AppendUint16(b, p.Quanta[0])
	}
	b = binary.BigEndian.AppendUint16(b, opcodePFC)
	b = append(b, 0, p.Priorities)
	for _, q := range p.Quanta {
		b = binary.BigEndian.AppendUint16(b, q)
	}
	return b
}

// Pause reads a frame of flow control; false if f is none.
func (f *Frame) Pause(p *Pause) bool {
	return f.Unknown == Unknown{EtherLayer, etherMACControl} && p.Decode(f.Payload)
}
