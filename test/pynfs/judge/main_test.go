package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

const codes = `A1 FLAGS: a, all, everything
A2 FLAGS: a, all, everything
B1 FLAGS: b, all, everything
X1 FLAGS: x, everything
`

func TestJudge(t *testing.T) {
	const table = `
# comment
0   A2  fail  there is no A2
12  B*  omit  there is no B
0   X1  extra by name
`
	line := func(code, outcome string) string { return code + "   st_a.testIt       : " + outcome + "\n" }
	const end = "Command line asked for 3 of 4 tests\nOf those: and so on\n"
	for _, c := range []struct {
		name, log string
		wrong     []string
		err       bool
	}{
		{name: "as expected", log: line("A1", "PASS") + line("A2", "FAILURE") + "      text\n" + line("B1", "PASS") + line("X1", "PASS") + end},
		{name: "a failure", log: line("A1", "FAILURE") + line("A2", "FAILURE") + line("B1", "WARNING") + line("X1", "PASS") + end,
			wrong: []string{"A1: fail, want pass", "B1: warn, want pass"}},
		{name: "passes", log: line("A1", "PASS") + line("A2", "PASS") + line("B1", "PASS") + line("X1", "PASS") + end,
			wrong: []string{"A2: pass, want fail (line 3: there is no A2)", "line 3 of the table: no A2 is so"}},
		{name: "does not run", log: line("A1", "OMIT") + line("A2", "FAILURE") + line("B1", "NOT RUN") + line("X1", "OMIT") + end,
			wrong: []string{"A1: omit, want pass", "B1: not run, want pass", "X1: omit, want pass (line 5: by name)", "line 5 of the table: no X1 is so"}},
		{name: "is missing", log: line("A1", "PASS") + line("A2", "FAILURE") + line("X1", "PASS") + end, wrong: []string{"B1: omit, want pass"}},
		{name: "no end", log: line("A1", "PASS"), err: true},
		{name: "nothing", log: end, err: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules, err := readTable(strings.NewReader(table))
			if err != nil {
				t.Fatal(err)
			}
			all, err := inAll(strings.NewReader(codes))
			if err != nil {
				t.Fatal(err)
			}
			_, wrong, err := judge(strings.NewReader(c.log), "0", rules, all)
			if (err != nil) != c.err || !slices.Equal(wrong, c.wrong) {
				t.Errorf("%q, %v", wrong, err)
			}
		})
	}
}

func TestTable(t *testing.T) {
	for _, bad := range []string{"0 A fail", "3 A fail why", "0 [ fail why", "0 A perhaps why"} {
		if _, err := readTable(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	f, err := os.Open("../expected")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if rules, err := readTable(f); err != nil || len(rules) == 0 {
		t.Errorf("%d rules, %v", len(rules), err)
	}
	if _, err := inAll(strings.NewReader("no codes")); err == nil {
		t.Error("nothing is a list")
	}
}
