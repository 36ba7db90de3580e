package results

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/kernel"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

const samples = "../../../samples"

// all computes what can be shown of a capture.
func all(t *testing.T, name string, join *kernel.Join) (*latency.Report, *check.Checker, []*check.Finding) {
	t.Helper()
	in, err := capture.Open([]string{filepath.Join(samples, name)}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r := latency.New(latency.Options{Top: 3})
	var found []*check.Finding
	c := check.New(check.Options{Rules: check.All()}, func(f *check.Finding) { found = append(found, f) })
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{Observers: []decode.Observer{c.Observer()}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		r.Add(&v)
		c.Transaction(&v)
		if join != nil {
			join.Add(&v)
		}
		v.Learn()
	})
	if err := d.Run(in); err != nil {
		t.Fatal(err)
	}
	c.Finish()
	st := d.Stats()
	return r.Report(latency.Source{Inputs: []string{"a\x1b[31m\n" + name}, Packets: st.Packets, Bytes: st.Bytes, First: st.First, Last: st.Last}), c, found
}

// shown fails if text holds what a terminal would obey, or ends lines in spaces.
func shown(t *testing.T, what, s string, parts ...string) {
	t.Helper()
	for _, r := range s {
		if r != '\n' && (r == utf8.RuneError || !unicode.IsPrint(r)) {
			t.Fatalf("%s: %q", what, r)
		}
	}
	for _, p := range parts {
		if !strings.Contains(s, p) {
			t.Errorf("%s: no %q in\n%s", what, p, s)
		}
	}
}

// All results of a capture with troubles can be printed, and an error of the
// writer comes back. The golden files of rpcrdma-dump hold the wording.
func TestPrintable(t *testing.T) {
	rep, c, found := all(t, "rocev2-nfs3-loss.both.pcapng.zst", nil)
	other, _, _ := all(t, "iwarp-nfs3-crc.pcap.zst", nil)
	for _, opt := range []ReportOptions{{}, {Verbose: true, Series: true}} {
		var b bytes.Buffer
		if err := Report(&b, rep, opt); err != nil {
			t.Fatal(err)
		}
		shown(t, "report", b.String(), "a\\x1b[31m\\n", "Where the time went", "CALL", "REPLY", "WAIT", "pull")
	}
	var b bytes.Buffer
	if err := Diff(&b, latency.Compare(rep, other), 0); err != nil {
		t.Fatal(err)
	}
	shown(t, "diff", b.String(), "P99 CHANGE", "VERDICT", "Change of the mean of each phase")
	b.Reset()
	if err := Diff(&b, latency.Compare(rep, other), 60); err != nil || !strings.Contains(b.String(), "no room for the columns P99 CHANGE") {
		t.Errorf("%v:\n%s", err, &b)
	}

	if len(found) == 0 {
		t.Fatal("no findings")
	}
	form := Findings{}
	counts := make(map[*check.Rule]uint64)
	for _, f := range found {
		shown(t, "finding", string(form.Append(nil, f)), f.Rule.ID)
		counts[f.Rule]++
	}
	b.Reset()
	CheckSummary(&b, c, &Shown{Findings: counts, Max: 1, Hidden: 3})
	shown(t, "summary", b.String(), "NOT JUDGED", "(3 not shown: --severity note)")
	b.Reset()
	if err := Rules(&b, check.Rules(), check.RFC8166); err != nil || strings.Count(b.String(), "\n") != len(check.Rules())+1 {
		t.Errorf("%v:\n%s", err, b.String())
	}
}

// An empty report has no tables, and does not divide by zero.
func TestEmpty(t *testing.T) {
	var b bytes.Buffer
	rep := latency.New(latency.Options{}).Report(latency.Source{})
	if err := Report(&b, rep, ReportOptions{Verbose: true, Series: true}); err != nil {
		t.Fatal(err)
	}
	if err := Diff(&b, latency.Compare(rep, rep), 0); err != nil {
		t.Fatal(err)
	}
	Kernel(&b, kernel.New(kernel.Options{}).Result())
	CheckSummary(&b, check.New(check.Options{Rules: check.All()}, nil), &Shown{})
	shown(t, "empty", b.String(), "0 transactions", "nothing could be judged")
	if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
		t.Error(b.String())
	}
}

func TestKernel(t *testing.T) {
	join := kernel.New(kernel.Options{})
	for _, name := range []string{"trace.client", "trace.server"} {
		text, err := os.ReadFile(filepath.Join(samples, "rocev2-nfs3-longcall."+name))
		if err != nil {
			t.Fatal(err)
		}
		if err := join.ReadTrace("\x1b"+name, bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	all(t, "rocev2-nfs3-longcall.pcap", join)
	var b bytes.Buffer
	Kernel(&b, join.Result())
	shown(t, "kernel", b.String(), "CLIENT: medians", "SERVER: medians", "\\x1btrace.client")
}

type full struct{ io.Writer }

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriteError(t *testing.T) {
	rep, _, _ := all(t, "rocev2-nfs3-longcall.pcap", nil)
	if err := Report(full{}, rep, ReportOptions{}); err == nil {
		t.Error("no error of a report")
	}
	if err := Rules(full{}, check.Rules(), check.Linux); err == nil {
		t.Error("no error of the rules")
	}
}
