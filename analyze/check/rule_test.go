package check

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	ids, numbers := make(map[string]bool), make(map[string]bool)
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)
	number := regexp.MustCompile(`^[A-Z][0-9]*\.[0-9]+$`)
	bound := make(map[int]bool)
	for _, r := range Rules() {
		if !name.MatchString(r.ID) || ids[r.ID] {
			t.Errorf("ID %q is not of the usual form, or not unique", r.ID)
		}
		if !number.MatchString(r.Number) && !strings.HasPrefix(r.Number, "L") || numbers[r.Number] {
			t.Errorf("number %q of %s is not of the usual form, or not unique", r.Number, r.ID)
		}
		ids[r.ID], numbers[r.Number] = true, true
		if r.Title == "" || r.Text == "" || r.Source == "" || r.Needs == 0 || r.Severity[RFC8166] == Off {
			t.Errorf("%s is not complete", r.ID)
		}
		if Lookup(r.ID) != r || Lookup(strings.ToLower(r.Number)) != r {
			t.Errorf("%s is not found", r.ID)
		}
		for _, b := range r.Bindings {
			if b < 1 || b > len(Bindings) {
				t.Errorf("%s: there is no binding requirement B%d", r.ID, b)
			}
			bound[b] = true
		}
	}
	for i := range Bindings {
		if !bound[i+1] {
			t.Errorf("no rule covers B%d", i+1)
		}
	}
	if Lookup("no-such-rule") != nil {
		t.Error("a rule that does not exist is found")
	}
}

func TestSelect(t *testing.T) {
	count := func(s Selection) (n int) {
		for _, on := range s {
			if on {
				n++
			}
		}
		return n
	}
	for _, test := range []struct {
		list string
		n    int
		has  string
		not  string
	}{
		{"zero-grant", 1, "zero-grant", "rnr-nak"},
		{"L12.3", 1, "zero-grant", "rnr-nak"},
		{"l12", 5, "rnr-nak", "msgp-used"},
		{"L12,-zero-grant", 4, "rnr-nak", "zero-grant"},
		{"-L12", int(ruleCount) - 5, "msgp-used", "zero-grant"},
		{"*", int(ruleCount), "zero-grant", ""},
		{"access-*, rnr-nak", 7, "access-beyond-segment", "zero-grant"},
		{"B3", 1, "pad-in-stream", ""},
		{"B*,-B10", 0, "write-chunk-ignored", "chunks-refused"},
		{"L17.?", 4, "done-used", ""},
	} {
		s, err := Select(test.list)
		if err != nil {
			t.Errorf("%q: %v", test.list, err)
			continue
		}
		if n := count(s); n != test.n && test.n != 0 {
			t.Errorf("%q selects %d rules, want %d", test.list, n, test.n)
		}
		if !s[Lookup(test.has).id] || test.not != "" && s[Lookup(test.not).id] {
			t.Errorf("%q selects the wrong ones", test.list)
		}
	}
	for _, list := range []string{"", "nothing", "zero-grant,,rnr-nak", "[", "-", "L99"} {
		if _, err := Select(list); err == nil {
			t.Errorf("%q is taken for a list of rules", list)
		}
	}
}

// The table in the documentation is made from the rules.
func TestDocumentation(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "reference", "checks.md")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- rules: written by go test ./analyze/check -update -->\n", "<!-- end of rules -->\n"
	text := string(b)
	at, to := strings.Index(text, begin), strings.Index(text, end)
	if at < 0 || to < at {
		t.Fatalf("%s has no place for the rules", file)
	}
	at += len(begin)
	want := markdown()
	if text[at:to] == want {
		return
	}
	if !*update {
		t.Fatalf("%s does not describe the rules as they are: go test ./analyze/check -update", file)
	}
	if err := os.WriteFile(file, []byte(text[:at]+want+text[to:]), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNames(t *testing.T) {
	for _, p := range Profiles {
		if q, ok := ParseProfile(p); !ok || q.String() != p {
			t.Errorf("profile %q", p)
		}
	}
	for s := Note; s <= Error; s++ {
		if q, ok := ParseSeverity(s.String()); !ok || q != s {
			t.Errorf("severity %v", s)
		}
	}
	for _, name := range []string{"", "off", "fatal"} {
		if _, ok := ParseSeverity(name); ok {
			t.Errorf("%q is taken for a severity", name)
		}
		if _, ok := ParseProfile(name); ok {
			t.Errorf("%q is taken for a profile", name)
		}
	}
	if n := (NeedCall | NeedArguments).String(); n != "call body" {
		t.Errorf("needs %q", n)
	}
}
