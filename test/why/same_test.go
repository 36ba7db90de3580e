package why_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/simulate"
)

// TestSame: what two capture points have seen gives the same answer as two files in either order, as saved states in either order, as the
// state of both, and as a merged file that does not say which packet is whose.
func TestSame(t *testing.T) {
	dump := built(t)
	list := simulate.Situations()
	step := 4
	if testing.Short() {
		step = 48
	}
	for i := int(*seed) % step; i < len(list); i += step {
		s := &list[i]
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			c := s.Draw(*seed)
			r := simulate.Run(c)
			off := r.Shift(simulate.AtServer, int64(i-len(list)/2)*20_000, float64(i%30)-15)
			dir := t.TempDir()
			file := func(name string, write func(io.Writer) error) string {
				path := filepath.Join(dir, name)
				var b bytes.Buffer
				if err := write(&b); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			client := file("client.pcap", func(w io.Writer) error { return r.WritePcap(w, simulate.AtClient) })
			server := file("server.pcap", func(w io.Writer) error { return off.WritePcap(w, simulate.AtServer) })
			merged := file("merged.pcap", func(w io.Writer) error { return r.WriteMerged(w, simulate.AtClient, off, simulate.AtServer) })
			saved := func(files ...string) string {
				path := filepath.Join(dir, filepath.Base(files[0])+".state"+string(rune('0'+len(files))))
				if out, err := exec.Command(dump, append([]string{"report", "--save-state", path}, files...)...).CombinedOutput(); err != nil { // #nosec G204
					t.Fatalf("%v\n%s", err, out)
				}
				return path
			}
			say := func(files ...string) (*report, []byte) {
				out, err := said(dump, append([]string{"why", "-T", "json"}, files...))
				rep := &report{}
				if err == nil {
					err = json.Unmarshal(out, rep)
				}
				if err != nil {
					t.Fatal(err)
				}
				return rep, out
			}
			want, text := say(client, server)
			one, other := saved(client), saved(server)
			for _, files := range [][]string{{server, client}, {one, other}, {other, one}, {saved(client, server)}} {
				if _, got := say(files...); !bytes.Equal(got, text) {
					t.Errorf("two files: %s\n%v: %s", text, files, got)
				}
			}
			got, _ := say(merged)
			if c.Loss != nil || c.CaptureGaps != nil || c.Outage != nil { // which of two packets is whose is then not always clear: it may say less
				same := func(a claim) bool {
					return slices.ContainsFunc(certainOf(want), func(b claim) bool { return a.Code == b.Code && a.Side == b.Side })
				}
				got.Causes = slices.DeleteFunc(certainOf(got), same)
				want.Causes = nil
			}
			if !alikeReports(got, want) {
				t.Errorf("two files: %s\n%v\nmerged: %s\n%v", want.Summary, want.Causes, got.Summary, got.Causes)
			}
		})
	}
}

// alikeReports reports whether two answers claim the same, and say nearly the same of it.
func alikeReports(a, b *report) bool {
	x, y := certainOf(a), certainOf(b)
	return slices.EqualFunc(x, y, func(c, d claim) bool {
		return c.Code == d.Code && c.Side == d.Side && c.Certainty == d.Certainty && c.Clock == d.Clock && max(c.Time-d.Time, d.Time-c.Time)*20 <= max(c.Time, d.Time)
	})
}

// certainOf are the claims of more than a possibility.
func certainOf(r *report) []claim {
	return slices.DeleteFunc(slices.Clone(r.Causes), func(c claim) bool { return c.Certainty == "possible" })
}
