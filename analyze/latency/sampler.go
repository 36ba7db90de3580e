package latency

// Samplers is the memory that several Samplers share.
type Samplers struct{ m memory }

// NewSamplers bounds Samplers: beyond limit bytes of histograms, percentiles lose
// digits.
func NewSamplers(limit int) *Samplers { return &Samplers{memory{limit: limit}} }

// Scarce reports whether a Sampler had to lose digits.
func (s *Samplers) Scarce() bool { return s.m.scarce }

// Sampler collects values of any unit, durations in nanoseconds as a rule: exactly
// up to 256 of them, then in a histogram. The zero value is empty.
type Sampler struct{ d dist }

// Add takes a value; those below zero are ignored.
func (s *Samplers) Add(x *Sampler, v int64) {
	if v >= 0 {
		x.d.add(v, &s.m)
	}
}

// Merge moves what o holds to x.
func (s *Samplers) Merge(x, o *Sampler) { x.d.merge(&o.d, &s.m) }

// Count is how many values there are.
func (x *Sampler) Count() uint64 { return x.d.count }

// Distribution is what is known of the values.
func (x *Sampler) Distribution() *Distribution { return x.d.distribution() }

// Include adds to x what o holds, and leaves o as it is.
func (s *Samplers) Include(x, o *Sampler) { x.d.include(&o.d, &s.m) }
