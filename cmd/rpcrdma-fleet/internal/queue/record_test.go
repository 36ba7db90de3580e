package queue

import (
	"strings"
	"testing"
)

// TestRecord: what no worker writes is not a record, and no sign of life.
func TestRecord(t *testing.T) {
	crash := `{"worker":"w","time":"2026-11-22T00:00:00Z","reason":"` + strings.Repeat("é", 2000) + `"}`
	for _, x := range []struct {
		b  string
		ok bool
	}{
		{`{"state":"running","worker":"w","job":"","since":"2026-11-22T00:00:00Z"}`, true},
		{`{"state":"returned","crashes":[` + crash + `,` + crash + `,` + crash + `],"failures":500}`, true},
		{`{"state":"returned","crashes":[{},{},{},{}]}`, false},
		{`{"state":"returned","failures":501}`, false},
		{`{"state":"returned","failures":-1}`, false},
		{`{"state":"returned","failures":1e3}`, false},
		{`{"state":"returned","failures":99999999999999999999}`, false},
		{`{"state":"returned","since":"99999-01-01T00:00:00Z"}`, false},
		{`{"state":"nothing"}`, false},
		{`{"state":"running","worker":"a b"}`, false},
		{`{"state":"running","more":1}`, false},
		{`{"state":"running"}{}`, false},
		{`{"state":"running"`, false},
		{`null`, false},
		{`{"state":"running","reason":"` + strings.Repeat("x", maxRecord) + `"}`, false},
	} {
		r, err := decodeRecord([]byte(x.b))
		if (err == nil) != x.ok {
			t.Errorf("%.80s: %+v, %v", x.b, r, err)
		}
		if err != nil {
			continue
		}
		for _, c := range r.Crashes {
			if len(c.Reason) > maxReason+len("…") {
				t.Errorf("a reason of %d bytes", len(c.Reason))
			}
		}
		if b, err := r.encode(); err != nil || len(b) > maxRecord {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	id := strings.Repeat("0a", 16)
	for _, x := range []struct {
		b  string
		ok bool
	}{
		{`{"host":"h","pid":1,"version":"v","started":"2026-11-22T00:00:00Z","done":3,"unit":"` + id + `","resident":5}`, true},
		{`{"unit":"../x"}`, false},
		{`{"key":"*"}`, false},
		{`{"done":-1}`, false},
		{`{"pid":-1}`, false},
		{`{"resident":-5}`, false},
		{`{"progress":{"file":-1}}`, false},
		{`{"progress":{"file":3,"files":2}}`, false},
		{`{"progress":{"size":-1}}`, false},
		{`{"progress":{"bytes":-1,"size":1}}`, false},
		{`{"progress":{"packets":1e30}}`, false},
	} {
		if s, err := decodeSign([]byte(x.b)); (err == nil) != x.ok {
			t.Errorf("%.80s: %+v, %v", x.b, s, err)
		}
	}
}
