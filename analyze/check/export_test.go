package check

// Breaches runs the scenes that break each rule, for tests of packages that show
// findings.
func Breaches(f func(*Checker, []*Finding)) {
	for i := range breaches {
		r := breaches[i].scene(true).run(RFC8166)
		f(r.check, r.findings)
	}
}
