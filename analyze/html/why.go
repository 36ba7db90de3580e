package html

import (
	"github.com/rpcrdma/toolkit/analyze/diagnosis"
)

// whyView is what a page says of a diagnosis.
type whyView struct {
	Summary string // if nothing is slow
	Point   string
	Causes  []whyCause
}

type whyCause struct {
	Text, Side string
	Strong     bool // more than possible
	Evidence   []string
	Next       []string
}

func newWhyView(rep *diagnosis.Report) *whyView {
	if rep == nil {
		return nil
	}
	v := &whyView{Point: rep.Point}
	if rep.Healthy() {
		v.Summary = rep.Summary
	}
	for _, c := range rep.Shown() {
		x := whyCause{Text: c.Text, Side: string(c.Side), Strong: c.Certainty != diagnosis.Possible, Next: c.Next}
		for _, e := range c.Evidence {
			x.Evidence = append(x.Evidence, rep.Named(&e))
		}
		v.Causes = append(v.Causes, x)
	}
	return v
}
