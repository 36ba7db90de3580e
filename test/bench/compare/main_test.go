package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	wall := func(s sample) float64 { return s.wall.Seconds() }
	for _, test := range []struct {
		in   []int
		want float64
	}{
		{[]int{3}, 3},
		{[]int{5, 1, 3}, 3},
		{[]int{4, 1, 3, 2}, 2.5},
	} {
		var s []sample
		for _, v := range test.in {
			s = append(s, sample{wall: time.Duration(v) * time.Second})
		}
		if got := median(s, wall); got != test.want {
			t.Errorf("median of %v = %v, want %v", test.in, got, test.want)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	in := &input{path: "dir/x.pcap", bytes: 2e6, packets: 1000, version: 3}
	programs := []*program{{name: nameDD}, {name: nameWalk}, {name: "rpcrdma-dump"}, {name: nameTshark}}
	runs := map[string]map[*input][]sample{
		nameDD:         {in: {{wall: 80 * time.Millisecond, sys: 80 * time.Millisecond}}},
		nameWalk:       {in: {{wall: 100 * time.Millisecond, user: 200 * time.Millisecond}}},
		"rpcrdma-dump": {in: {{wall: 200 * time.Millisecond, user: 300 * time.Millisecond, rss: 8 << 20}}},
		nameTshark:     {in: {{wall: 10 * time.Second, user: 8 * time.Second, sys: time.Second}}},
	}
	var b strings.Builder
	table(&b, in, programs, runs)
	const want = "| rpcrdma-dump | 0.200 | 0.200–0.200 | 0.300 | 5,000 | 10 | 200000 | 2.50 | 50.00 | 30.00 | 1.50 | 8 |\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("no line %q in:\n%s", want, b.String())
	}
}

func TestInstructions(t *testing.T) {
	const log = "==7== \n==7== Events    : Ir\n==7== Collected : 12345678\n==7== \n"
	if n, err := collected([]byte(log)); n != 12345678 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range []string{"", "==7== Collected : \n", "==7== Collected : 99999999999999999999\n"} {
		if n, err := collected([]byte(bad)); err == nil {
			t.Errorf("%q: %d", bad, n)
		}
	}
}

// TestFigures: the committed figures can be read, and what cannot be read says where it is.
func TestFigures(t *testing.T) {
	f, err := readFigures("instructions.tsv")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "figures")
	var again strings.Builder
	f.write(&again)
	if b, err := os.ReadFile("instructions.tsv"); err != nil || again.String() != string(b) {
		t.Errorf("%v, written again:\n%s", err, again.String())
	}
	for _, test := range []struct{ change, to, want string }{
		{"-q\t", "-Q\t", `"-Q", want a line for "-q" here`},
		{"-q\t", "-q\tx\t", ":5: 5 columns, want 4"},
		{"-q\t", "-q\t-", ":5: column 2: "},
		{"listing\t", "# listing\t", "7 lines, want one for each of the 8 workloads"},
	} {
		if err := os.WriteFile(file, []byte(strings.Replace(again.String(), test.change, test.to, 1)), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := readFigures(file); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v", test.to, err)
		}
	}
}

func TestJudge(t *testing.T) {
	committed := []figure{{"-q", 1000, 1000, 5}, {"report", 1200, 1000, 25}, {"check", 1240, 1000, 25}}
	for _, test := range []struct {
		counted []float64
		over    int
		want    string
	}{
		{[]float64{1030, 1236, 1250}, 0, "| -q | 1030 | 1000 | +3.0 % | 1000 | +3.0 % | +5 % |  |\n"},
		{[]float64{1031, 1000, 900}, 1, "| -q | 1031 | 1000 | +3.1 % | 1000 | +3.1 % | +5 % | MORE THAN COMMITTED |\n"},
		{[]float64{1000, 1237, 1251}, 2, "| check | 1251 | 1240 | +0.9 % | 1000 | +25.1 % | +25 % | MORE THAN ALLOWED |\n"},
	} {
		var b strings.Builder
		if over := judge(&b, committed, test.counted); over != test.over || !strings.Contains(b.String(), test.want) {
			t.Errorf("%v: %d\n%s", test.counted, over, b.String())
		}
	}
}
