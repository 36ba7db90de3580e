package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	const check = `"self_check":{"calls":100,"transactions":120,"same":100}`
	for _, c := range []struct {
		name, report string
		line         string
		good         bool
	}{
		{"good", `"planned":100,"verdicts":{"same":90,"equivalent":9,"omitted":1},` + check,
			"100 operations: 90 same, 9 equivalent, 1 omitted; 99.0 % same or equivalent; self-check 100 of 100\n", true},
		{"not enough", `"planned":100,"verdicts":{"same":90,"equivalent":8,"omitted":2},` + check,
			"100 operations: 90 same, 8 equivalent, 2 omitted; 98.0 % same or equivalent; self-check 100 of 100\n", false},
		{"one is worse", `"planned":100,"verdicts":{"same":99,"worse":1},` + check,
			"100 operations: 99 same, 0 equivalent, 1 worse; 99.0 % same or equivalent; self-check 100 of 100\n", false},
		{"one has no outcome", `"planned":100,"verdicts":{"same":99},` + check,
			"100 operations: 99 same, 0 equivalent; 99.0 % same or equivalent; self-check 100 of 100\n", false},
		{"stopped", `"planned":100,"stopped":"interrupted","verdicts":{"same":100},` + check,
			"100 operations: 100 same, 0 equivalent; 100.0 % same or equivalent; self-check 100 of 100\n", false},
		{"nothing", `"planned":0,"verdicts":{}`, "0 operations: 0 same, 0 equivalent; 0.0 % same or equivalent\n", false},
		{"no self-check", `"planned":1,"verdicts":{"same":1}`, "1 operations: 1 same, 0 equivalent; 100.0 % same or equivalent\n", false},
		{"packets tell another story", `"planned":1,"verdicts":{"same":1},"self_check":{"calls":1,"transactions":1,"different":1}`,
			"1 operations: 1 same, 0 equivalent; 100.0 % same or equivalent; self-check 0 of 1\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report")
			if err := os.WriteFile(file, []byte(`{"schema":"rpcrdma.replay/1",`+c.report+`}`), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err := act(&out, "report", file)
			if out.String() != c.line {
				t.Errorf("%q, want %q", out.String(), c.line)
			}
			if (err == nil) != c.good {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestSums(t *testing.T) {
	const sum = "d41d8cd98f00b204e9800998ecf8427e"
	for in, want := range map[string]string{
		`{"files":[{"md5":"` + sum + `","path":"d1/naïve name"}]}`: sum + "  ./d1/naïve name\n",
		`{"files":[{"md5":"` + sum + `","path":"d1/\n"}]}`:         "",
		sum + "  ./d1/small\n" + sum + "  ./half\n":                sum + "  ./d1/small\n",
	} {
		var out strings.Builder
		part := map[string]bool{"half": true}
		if err := sums(&out, []byte(in), part); out.String() != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", in, out.String(), err)
		}
	}
}

func TestRest(t *testing.T) {
	var out strings.Builder
	file := filepath.Join(t.TempDir(), "report")
	in := `{"schema":"rpcrdma.replay/1","reasons":[{"verdict":"omitted","reason":"no delegation","count":4},{"verdict":"worse","reason":"x","count":1}],
		"mismatches":[{"op":7,"what":"nfs3 READ","verdict":"worse","reasons":["a","b"]}],"more_mismatches":2}`
	if err := os.WriteFile(file, []byte(in), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := act(&out, "rest", file); err != nil {
		t.Fatal(err)
	}
	if want := "   4 omitted: no delegation\nworse: operation 7, nfs3 READ: a; b\n2 more\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestKnownFault: only replies that have the known fault as a reason are excused.
func TestKnownFault(t *testing.T) {
	report := func(mismatches string, same, worse int) string {
		return fmt.Sprintf(`{"schema":"rpcrdma.replay/1","planned":%d,"verdicts":{"same":%d,"worse":%d},"mismatches":[%s],"self_check":{"calls":1,"same":1}}`,
			same+worse, same, worse, mismatches)
	}
	const ill, other = `{"op":1,"verdict":"worse","reasons":["ILLEGAL: NFS4ERR_OP_ILLEGAL, was OK"]}`, `{"op":2,"verdict":"worse","reasons":["IO"]}`
	for _, c := range []struct {
		report, known, has string
		good               bool
	}{
		{report(ill, 99, 1), "", "99.0 %", false},
		{report(ill, 99, 1), "NFS4ERR_OP_ILLEGAL", "; 1 because of a known fault of the server (NFS4ERR_OP_ILLEGAL);", true},
		{report(ill+","+ill, 8, 2), "NFS4ERR_OP_ILLEGAL", "; 2 because", true},
		{report(ill+","+other, 98, 2), "NFS4ERR_OP_ILLEGAL", "; 1 because", false},
		{report(ill, 98, 2), "NFS4ERR_OP_ILLEGAL", "; 1 because", false}, // one that is not listed
	} {
		file := filepath.Join(t.TempDir(), "report")
		if err := os.WriteFile(file, []byte(c.report), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		args := []string{file}
		if c.known != "" {
			args = append(args, c.known)
		}
		if err := act(&out, "report", args...); (err == nil) != c.good || !strings.Contains(out.String(), c.has) {
			t.Errorf("%q of %q: %q, %v", c.known, c.report, out.String(), err)
		}
	}
}

func TestWhy(t *testing.T) {
	cause := func(code, certainty string) string {
		return `{"code":"` + code + `","certainty":"` + certainty + `"}`
	}
	for _, c := range []struct {
		name, causes, codes string
		good                bool
	}{
		{"first", cause("outage", "likely") + "," + cause("credits", "likely"), "outage", true},
		{"second", cause("outage", "likely") + "," + cause("credits", "likely"), "credits", false},
		{"nothing", "", "none,client-idle", true},
		{"only possible", cause("server-time", "possible"), "none", true},
		{"a cause where none is", cause("server-time", "likely"), "none", false},
		{"another one is certain", cause("outage", "certain") + "," + cause("credits", "certain"), "outage", false},
		{"not found", "", "outage", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "diagnosis")
			if err := os.WriteFile(file, []byte(`{"schema":"rpcrdma.diagnosis/1","summary":"…","causes":[`+c.causes+`]}`), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := act(&out, "why", file, c.codes); (err == nil) != c.good {
				t.Errorf("%v", err)
			}
			if out.String() != "…\n" {
				t.Errorf("%q", out.String())
			}
		})
	}
}
