package iwarp

// Sniff classifies the payload of one TCP segment without context. Yes: it starts with an MPA frame, or
// consists of more FPDUs without markers than chance explains. Maybe: p may be the start of one, but is too
// short to tell or continues in the next segment. No: no FPDU starts there. length is its declared length,
// which exceeds len(p) if the capture cut it.
func Sniff(p []byte, length int) Verdict {
	request, reply, short := mpaKind(p)
	if request || reply {
		if short {
			return Maybe
		}
		return Yes
	}
	if len(p) < headLen {
		return No
	}
	bits := bitsBoundary
	for at := 0; ; {
		if at == length {
			bits += bitsBoundary
		}
		if bits >= bitsEnough {
			return Yes
		}
		if at >= length || at+headLen > len(p) {
			return Maybe
		}
		f := p[at:]
		n := int(f[0])<<8 | int(f[1])
		b := plausible(f[FPDUHeaderLen:], n)
		if b < 0 {
			return No
		}
		bits += b
		at += FPDULen(n)
	}
}
