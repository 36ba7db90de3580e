package text

// Escape sequences of ANSI terminals (ECMA-48, SGR).
const (
	ColorOff    = "\x1b[0m"
	ColorDim    = "\x1b[2m"
	ColorBold   = "\x1b[1m"
	ColorRed    = "\x1b[31m"
	ColorGreen  = "\x1b[32m"
	ColorYellow = "\x1b[33m"
	ColorBlue   = "\x1b[34m"
	ColorCyan   = "\x1b[36m"
)

// Paint appends s in a color, if colors are on.
func Paint(b []byte, on bool, color, s string) []byte {
	if !on || s == "" {
		return append(b, s...)
	}
	b = append(b, color...)
	b = append(b, s...)
	return append(b, ColorOff...)
}
