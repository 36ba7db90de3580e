package main

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

func TestSplitTimes(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{[]string{"-t", "ad", "f"}, []string{"-t=ad", "f"}},
		{[]string{"-tad", "f"}, []string{"-t=ad", "f"}},
		{[]string{"-t", "f"}, []string{"-t", "f"}},
		{[]string{"-tttt", "f"}, []string{"-tttt", "f"}},
		{[]string{"--time", "r", "f"}, []string{"--time=r", "f"}},
		{[]string{"-r", "f", "-t"}, []string{"-r", "f", "-t"}},
		{[]string{"--", "-t", "e"}, []string{"--", "-t", "e"}},
		{nil, []string{}},
	} {
		if got := splitTimes(c.in); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestTimeFlag(t *testing.T) {
	var f timeFlag
	f.format.Nano = true
	for range 4 {
		if err := f.Set(timeRepeated); err != nil {
			t.Fatal(err)
		}
	}
	if f.format != (text.TimeFormat{Style: text.TimeDate, Nano: true}) || f.String() != "tttt" {
		t.Errorf("%+v", f)
	}
	if err := f.Set("nonsense"); err == nil {
		t.Error("nonsense accepted")
	}
}

func TestSplitOptions(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"header=y", []string{"header=y"}},
		{"header=y,separator=,", []string{"header=y", "separator=,"}},
		{"separator=,,header=y", []string{"separator=,", "header=y"}},
		{"aggregator=,,occurrence=f", []string{"aggregator=,", "occurrence=f"}},
	} {
		if got := splitOptions(c.in); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestFieldsLayout(t *testing.T) {
	for _, bad := range []string{"header=x", "separator=ab", "quote=x", "occurrence=x", "nothing=1", "header", "aggregator="} {
		if _, err := newFieldsPrinter([]string{"xid"}, []string{bad}); cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%s: %v", bad, err)
		}
	}
	p, err := newFieldsPrinter([]string{"xid"}, []string{"quote=d"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(p.value(nil, "a\"b\x1b")); got != `a""b\x1b` {
		t.Error(got)
	}
}
