//go:build tshark

package tshark

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCaptures compares every field of every capture.
func TestCaptures(t *testing.T) {
	tshark, version := find(t)
	t.Log(version)
	known := knownFields(t, tshark)
	for _, f := range allFields {
		if !known[f.name] {
			t.Logf("this tshark does not have the field %s", f.name)
		}
	}
	files := captures(t)
	total := newReport()
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			d := &diff{
				report: newReport(), known: known,
				ours: decodeCapture(t, file), theirs: dissect(t, tshark, file, known),
			}
			d.fail = func(text string) {
				if d.report.failures <= shown {
					t.Error(text)
				} else {
					t.Fail()
				}
			}
			d.compare()
			d.report.log(t)
			total.merge(d.report)
		})
	}
	t.Logf("all %d captures:", len(files))
	total.log(t)
	for _, e := range exceptions {
		if total.excepted[e.id] == 0 {
			t.Logf("the exception %s was not needed", e.id)
		}
	}
	for _, group := range []string{"infiniband", "iwarp_ddp", "rpcordma", "rpc", "nfs"} {
		if total.groups()[group] < 1000 {
			t.Errorf("only %d values of %s were compared", total.groups()[group], group)
		}
	}
}

// find returns the path and version of tshark.
func find(t *testing.T) (path, version string) {
	t.Helper()
	path, err := lookUp()
	if err != nil {
		t.Fatalf("there is no tshark to compare with: %v", err)
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		t.Fatalf("tshark --version: %v", err)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return path, strings.TrimSpace(first)
}
