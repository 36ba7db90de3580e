package text

// Escape sequences of ANSI terminals (ECMA-48, SGR).
const (
	colorOff    = "\x1b[0m"
	colorDim    = "\x1b[2m"
	colorBold   = "\x1b[1m"
	colorRed    = "\x1b[31m"
	colorGreen  = "\x1b[32m"
	colorYellow = "\x1b[33m"
	colorBlue   = "\x1b[34m"
	colorCyan   = "\x1b[36m"
)

// Paint appends s in a color, if colors are on.
func paint(b []byte, on bool, color, s string) []byte {
	if !on || s == "" {
		return append(b, s...)
	}
	b = append(b, color...)
	b = append(b, s...)
	return append(b, colorOff...)
}
