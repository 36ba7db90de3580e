package roce

// Problem says why a packet could not be decoded, or not fully.
type Problem uint8

// What Decode and Splitter find wrong.
const (
	NoProblem         Problem = iota
	ProblemCutBTH             // the capture ends within the base transport header
	ProblemCutHeaders         // the capture ends within the extension headers
	ProblemShortBTH           // declared shorter than a base transport header and ICRC
	ProblemShort              // declared shorter than the headers of its opcode and ICRC
	ProblemPad                // more pad bytes than payload
	ProblemVersion            // a transport header version other than 0
	ProblemOpcode             // the opcode is not defined
	ProblemLength             // a payload length that its opcode does not allow
	ProblemJoined             // the rest of a datagram of several packets, whose ends are not known

	endOfProblems
)

var problemTexts = [endOfProblems]string{
	ProblemCutBTH:     "cut in the base transport header",
	ProblemCutHeaders: "cut in the extension headers",
	ProblemShortBTH:   "shorter than a base transport header and ICRC",
	ProblemShort:      "shorter than the headers of its opcode and ICRC",
	ProblemPad:        "more pad bytes than payload",
	ProblemVersion:    "transport header version is not 0",
	ProblemOpcode:     "opcode not defined",
	ProblemLength:     "payload length that its opcode does not allow: several packets in one datagram?",
	ProblemJoined:     "rest of a datagram of several packets: where they end is not known",
}

// String is the problem in plain English; empty for NoProblem.
func (p Problem) String() string {
	if p < endOfProblems {
		return problemTexts[p]
	}
	return ""
}
