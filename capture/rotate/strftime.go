package rotate

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// layouts are conversions of strftime (POSIX), as layouts of package time.
var layouts = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002",
	'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04", 'e': "_2",
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'Z': "MST", 'z': "-0700",
}

// checkTime reports whether all conversions of a name are known.
func checkTime(name string) error {
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			continue
		}
		if i++; i == len(name) {
			return fmt.Errorf("%q: nothing follows the last %%", name)
		}
		if _, ok := layouts[name[i]]; !ok && name[i] != '%' && name[i] != 's' {
			return fmt.Errorf("%q: %%%c is not known; there are %%Y %%m %%d %%H %%M %%S %%s %%j %%F %%T %%y %%b %%a %%Z and others of strftime", name, name[i])
		}
	}
	return nil
}

// formatTime replaces the conversions of a name that was checked.
func formatTime(name string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' || i+1 == len(name) {
			b.WriteByte(name[i])
			continue
		}
		i++
		switch c := name[i]; c {
		case '%':
			b.WriteByte('%')
		case 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		default:
			b.WriteString(t.Format(layouts[c]))
		}
	}
	return b.String()
}
