package scrubtest

import "testing"

func TestDiffer(t *testing.T) {
	for _, x := range []struct {
		was, is string
		same    bool
	}{
		{`{"client":"192.0.2.1","path":"a/b"}`, `{"client":"10.200.3.4","path":"x/y"}`, true},
		{`{"client":"192.0.2.1","path":"a/b"}`, `{"client":"10.200.3.4","path":"x/yz"}`, false},
		{`{"client":"fd00::1","n":1}`, `{"client":"9c40:e35c:0:f:c206:4be7:f63f:c062","n":1}`, true},
		{`{"n":1}`, `{"n":2}`, false},
		{`{"n":1}`, `{}`, false},
		{`{}`, `{"n":1}`, false},
		{`[{"n":1},{"n":2}]`, `[{"n":2},{"n":1}]`, true},
		{`[1,2]`, `[2,1]`, false},
		{"{}\n{}", "{}", false},
		{`{"connection_key":"tcp|192.0.2.1/5|192.0.2.2/6|7"}`, `{"connection_key":"tcp|1.2.3.4/6|1.2.3.5/5|7"}`, true},
	} {
		if got := Differ([]byte(x.was), []byte(x.is)); (got == "") != x.same {
			t.Errorf("%s and %s: %q", x.was, x.is, got)
		}
	}
}
