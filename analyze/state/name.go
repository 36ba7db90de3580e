package state

import "fmt"

// ShortName names a tap by its inputs, for a note.
func ShortName(inputs []string) string {
	switch len(inputs) {
	case 0:
		return "a tap"
	case 1:
		return inputs[0]
	}
	return fmt.Sprintf("%s and %d more", inputs[0], len(inputs)-1)
}
