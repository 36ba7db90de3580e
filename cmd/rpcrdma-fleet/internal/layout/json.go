package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Sizes in bytes of the objects at most.
const (
	MaxUnit    = 128 << 20 // of a unit with all its files
	MaxJob     = 64 << 20
	MaxDone    = 64 << 20
	MaxFailure = 64 << 10
)

// ErrFormat says that an object is not what its name promises.
var ErrFormat = errors.New("malformed object")

// encode is the JSON form of an object. It is the same for equal values.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		panic(err) // the types of this package can all be encoded
	}
	return b.Bytes()
}

// decode reads a JSON object of at most most bytes, without unknown keys and anything after it.
func decode(b []byte, most int, v any) error {
	if len(b) > most {
		return fmt.Errorf("%w: %d bytes, more than %d", ErrFormat, len(b), most)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows the JSON object", ErrFormat)
	}
	return nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrFormat, fmt.Errorf(format, args...))
}
