package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestJudge: differences in the table are printed with their cause; others are errors.
func TestJudge(t *testing.T) {
	rules, err := readTable(strings.NewReader("# comment\n\n* | *nfs3* | nfsacl3 SETACL * | GARBAGE_ARGS, was done | long lists are refused\n"))
	if err != nil {
		t.Fatal(err)
	}
	var r result
	if err := json.Unmarshal([]byte(`{"verdicts":{"same":3,"worse":2,"better":1},"mismatches":[
		{"op":7,"what":"nfsacl3 SETACL d1/acl","verdict":"worse","reasons":["GARBAGE_ARGS, was done"]},
		{"op":8,"what":"nfs3 LINK d1/a","verdict":"worse","reasons":["NFS3ERR_IO, was OK"]},
		{"op":9,"what":"nfs3 LINK d1/b","verdict":"better","reasons":["OK, was NFS3ERR_IO"]}]}`), &r); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	wrong := judge(&out, "vfs", "rocev2-nfs3-basic", &r, rules)
	if !slices.Equal(wrong, []string{"vfs, rocev2-nfs3-basic: op 8, nfs3 LINK d1/a: worse: NFS3ERR_IO, was OK"}) {
		t.Errorf("%q", wrong)
	}
	if want := "| vfs | rocev2-nfs3-basic | 3 | 0 | 0 | 1 | 2 | 1: ?; 1: long lists are refused |\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
	if _, err := readTable(strings.NewReader("one | two\n")); err == nil {
		t.Error("a short line")
	}
}
