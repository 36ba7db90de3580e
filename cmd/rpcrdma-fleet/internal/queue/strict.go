package queue

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// strict reads one JSON value that has no fields which v lacks, and nothing behind it.
func strict(what string, b []byte, limit int, v any) error {
	if len(b) > limit {
		return tooLong(what, len(b), limit)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("data after the JSON value")
	}
	return nil
}

// cut shortens a text, which may come from anywhere, to n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
