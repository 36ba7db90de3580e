// Summary reads the output of go test -json and prints what go test would: a
// line for each package, and all that a failed test said. Skipped tests are
// named. The last line is
//
//	counts: PASSED FAILED SKIPPED
//
// where subtests count as tests, and a package that fails without a failed
// test, such as one that does not compile, counts as one failure.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
)

// event is a line of test2json, or of go build.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

type result struct {
	passed, failed, skipped int
	output                  map[string][]string // by test; "" for the package
}

func main() {
	packages := map[string]*result{}
	get := func(name string) *result {
		r := packages[name]
		if r == nil {
			r = &result{output: map[string][]string{}}
			packages[name] = r
		}
		return r
	}
	var passed, failed int
	var skipped []string
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Println(in.Text())
			continue
		}
		r := get(e.Package)
		switch {
		case e.Action == "build-output":
			fmt.Print(e.Output)
		case e.Action == "output":
			r.output[e.Test] = append(r.output[e.Test], e.Output)
		case e.Test != "" && e.Action == "pass":
			r.passed++
			passed++
			delete(r.output, e.Test)
		case e.Test != "" && e.Action == "skip":
			r.skipped++
			skipped = append(skipped, e.Package+" "+e.Test+": "+strings.TrimSpace(reason(r.output[e.Test])))
			delete(r.output, e.Test)
		case e.Test != "" && e.Action == "fail":
			r.failed++
			failed++
		case e.Action == "pass" && e.Test == "":
			fmt.Printf("ok    %-55s %7.2fs  %d passed, %d skipped\n", e.Package, e.Elapsed, r.passed, r.skipped)
			delete(packages, e.Package)
		case e.Action == "fail" && e.Test == "" && e.Package != "":
			if r.failed == 0 {
				failed++
			}
			fmt.Printf("FAIL  %-55s %7.2fs  %d passed, %d failed\n", e.Package, e.Elapsed, r.passed, r.failed)
			show(r.output)
			delete(packages, e.Package)
		}
	}
	if err := in.Err(); err != nil {
		fmt.Println("output of go test:", err)
		failed++
	}
	for _, s := range skipped {
		fmt.Println("SKIP ", s)
	}
	fmt.Printf("counts: %d %d %d\n", passed, failed, len(skipped))
}

// reason is the last line that a skipped test said before its verdict.
func reason(output []string) string {
	for i := len(output) - 1; i >= 0; i-- {
		if s := strings.TrimSpace(output[i]); s != "" && !strings.HasPrefix(s, "---") && !strings.HasPrefix(s, "===") {
			return s
		}
	}
	return ""
}

func show(output map[string][]string) {
	var names []string
	for name := range output {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		for _, s := range output[name] {
			fmt.Print("      ", s)
		}
	}
}
