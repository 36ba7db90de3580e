package text

const hexDigits = "0123456789abcdef"

// hexNumber appends 0x and at least digits hexadecimal digits.
func hexNumber(b []byte, v uint64, digits int) []byte {
	b = append(b, '0', 'x')
	for s := 60; s >= 0; s -= 4 {
		if v>>s == 0 && s/4 >= digits {
			continue
		}
		b = append(b, hexDigits[v>>s&15])
	}
	return b
}
