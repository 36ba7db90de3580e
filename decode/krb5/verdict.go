package krb5

// verdict is the result of checking a token.
type verdict uint8

const (
	good verdict = iota
	cut          // the capture holds too little of it
	tokenMalformed
	tokenReflected
	noSubkey
	wrongMIC
	wrongHeader
	wrongSequence
)

var verdicts = [...]string{
	good: "good", cut: "cut by the capture",
	tokenMalformed: "malformed token",
	tokenReflected: "the token says that the other side has sent it",
	noSubkey:       "made with the acceptor's subkey, but no AP-REP with one was captured",
	wrongMIC:       "wrong checksum",
	wrongHeader:    "the encrypted copy of the token's header is another one",
	wrongSequence:  "the sequence number in it is not that of the credential",
}

func (v verdict) String() string { return verdicts[v] }
