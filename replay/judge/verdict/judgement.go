package verdict

import "slices"

// maxReasons is how many reasons one Judgement lists.
const maxReasons = 8

// Judgement is what became of one call.
type Judgement struct {
	Verdict Verdict
	Reasons []Reason // the most important first; at most 8, and one more from Explain
}

// Of returns a Judgement with one reason.
func Of(v Verdict, r Reason) Judgement {
	r.Own = v
	return Judgement{v, []Reason{r}}
}

// Worsen adds a reason, and makes the verdict v if that is worse.
func (j *Judgement) Worsen(v Verdict, r Reason) {
	j.Verdict = max(j.Verdict, v)
	r.Own = v
	if len(j.Reasons) < maxReasons && !slices.Contains(j.Reasons, r) {
		j.Reasons = append(j.Reasons, r)
	}
}

// Explain makes the verdict Explained: r is why all that the other reasons say
// differs.
func (j *Judgement) Explain(r Reason) {
	j.Verdict, r.Own = Explained, Explained
	j.Reasons = slices.Insert(j.Reasons, 0, r)
}
