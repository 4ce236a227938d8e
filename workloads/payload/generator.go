package payload

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// writer writes what belongs to message n behind dst; word is a random number of its own.
type writer func(dst []byte, n int64, word uint64) []byte

// generator is a writer, how much it writes, and whether JSON wants it in quotes. The zero value
// writes nothing.
type generator struct {
	write  writer
	bounds Bounds
	text   bool
	list   []string // what is chosen from
}

// generatorNames are what generators there are, for errors.
const generatorNames = "seq, millis, int, float, bool, hex, uuid, text and choice"

// generators by name.
var generators = map[string]func(args []string) (generator, error){
	"seq": counting(0), "millis": counting(firstMillis), "int": integers, "float": floats, "bool": truths,
	"hex": hexDigits, "uuid": uuids, "text": letters, "choice": choices,
}

// firstMillis is the beginning of 2026, UTC.
const firstMillis = 1_767_225_600_000

// maxText bounds what one generator writes.
const maxText = 1 << 20

// parseGenerator reads a generator with what it takes: "int 1 100".
func parseGenerator(text string) (generator, error) {
	words, err := split(text)
	if err != nil {
		return generator{}, err
	}
	if len(words) == 0 {
		return generator{}, errors.New("names no generator; there are " + generatorNames)
	}
	parse, known := generators[words[0]]
	if !known {
		return generator{}, fmt.Errorf("%.40q is no generator; there are %s", words[0], generatorNames)
	}
	return parse(words[1:])
}

// split takes words apart; a word in double quotes may have spaces.
func split(text string) (words []string, err error) {
	for {
		text = strings.TrimLeft(text, " \t\n")
		switch {
		case text == "":
			return words, nil
		case text[0] == '"':
			word, rest, closed := strings.Cut(text[1:], `"`)
			if !closed {
				return nil, errors.New(`a " is not closed`)
			}
			words, text = append(words, word), rest
		default:
			end := strings.IndexAny(text, " \t\n")
			if end < 0 {
				end = len(text)
			}
			words, text = append(words, text[:end]), text[end:]
		}
	}
}

// inJSON is the generator as a JSON value.
func (g generator) inJSON() generator {
	if len(g.list) > 0 {
		list := make([]string, len(g.list))
		for i, text := range g.list {
			list[i] = quoted(text)
		}
		return oneOf(list)
	}
	if !g.text {
		return g
	}
	inner := g.write
	g.write = func(dst []byte, n int64, word uint64) []byte {
		return append(inner(append(dst, '"'), n, word), '"')
	}
	g.bounds = g.bounds.plus(exactly(2))
	return g
}

func takes(args []string, least, most int, form string) error {
	if len(args) < least || len(args) > most {
		return fmt.Errorf("is written %q", form)
	}
	return nil
}

// counting counts messages from a number on.
func counting(from int64) func([]string) (generator, error) {
	return func(args []string) (generator, error) {
		const most = 20 // digits of an int64 with its sign
		b := Bounds{Min: digits(from), Max: most, Mean: float64(max(digits(from), 7))}
		return generator{bounds: b, write: func(dst []byte, n int64, _ uint64) []byte {
			return strconv.AppendInt(dst, from+n, 10)
		}}, takes(args, 0, 0, "seq or millis")
	}
}

func integers(args []string) (generator, error) {
	if err := takes(args, 2, 2, "int MIN MAX"); err != nil {
		return generator{}, err
	}
	low, err := strconv.ParseInt(args[0], 10, 64)
	high, err2 := strconv.ParseInt(args[1], 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return generator{}, fmt.Errorf("int needs two whole numbers, not %.40s and %.40s", args[0], args[1])
	}
	if low > high {
		return generator{}, fmt.Errorf("int needs the smaller number first: %d is above %d", low, high)
	}
	span := uint64(high) - uint64(low) // all of them, less one
	shortest, longest := len(strconv.FormatInt(low, 10)), len(strconv.FormatInt(high, 10))
	b := Bounds{Min: min(shortest, longest), Max: max(shortest, longest), Mean: float64(longest)}
	if low < 0 && high >= 0 {
		b.Min = 1
	}
	if low == 0 && high > 0 && high < math.MaxInt64 {
		b.Mean = meanDigits(high + 1)
	}
	return generator{bounds: b, write: func(dst []byte, _ int64, word uint64) []byte {
		at := word
		if span != math.MaxUint64 {
			at, _ = bits.Mul64(word, span+1)
		}
		return strconv.AppendInt(dst, int64(uint64(low)+at), 10)
	}}, nil
}

func floats(args []string) (generator, error) {
	if err := takes(args, 2, 3, "float MIN MAX or float MIN MAX DIGITS"); err != nil {
		return generator{}, err
	}
	low, err := strconv.ParseFloat(args[0], 64)
	high, err2 := strconv.ParseFloat(args[1], 64)
	const bound = 1e15
	if errors.Join(err, err2) != nil || !(low >= -bound && high <= bound) {
		return generator{}, fmt.Errorf("float needs two numbers between -1e15 and 1e15, not %.40s and %.40s", args[0], args[1])
	}
	if low > high {
		return generator{}, fmt.Errorf("float needs the smaller number first: %v is above %v", low, high)
	}
	after := 2
	if len(args) == 3 {
		const most = 17
		if after, err = strconv.Atoi(args[2]); err != nil || after < 0 || after > most {
			return generator{}, fmt.Errorf("float takes 0 to %d digits after the point, not %.40s", most, args[2])
		}
	}
	a, z := len(strconv.FormatFloat(low, 'f', after, 64)), len(strconv.FormatFloat(high, 'f', after, 64))
	b := Bounds{Min: min(a, z), Max: max(a, z) + 1, Mean: float64(z)} // −0.00 is longer than both ends
	if low < 0 && high > 0 {
		b.Min = len(strconv.FormatFloat(0, 'f', after, 64))
	}
	return generator{bounds: b, write: func(dst []byte, _ int64, word uint64) []byte {
		return strconv.AppendFloat(dst, low+float64(word>>11)/(1<<53)*(high-low), 'f', after, 64)
	}}, nil
}

func truths(args []string) (generator, error) {
	return generator{bounds: Bounds{Min: 4, Max: 5, Mean: 4.5}, write: func(dst []byte, _ int64, word uint64) []byte {
		return strconv.AppendBool(dst, word>>63 == 0)
	}}, takes(args, 0, 0, "bool")
}

// count reads a number of bytes that a generator is to write.
func count(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxText {
		return 0, fmt.Errorf("%.40q is no length between 0 and %d", text, maxText)
	}
	return n, nil
}

const hexes = "0123456789abcdef"

func hexDigits(args []string) (generator, error) {
	if err := takes(args, 1, 1, "hex N"); err != nil {
		return generator{}, err
	}
	n, err := count(args[0])
	return generator{text: true, bounds: exactly(n), write: func(dst []byte, _ int64, word uint64) []byte {
		return appendHex(dst, n, word)
	}}, err
}

func appendHex(dst []byte, n int, word uint64) []byte {
	const perWord = 16
	left := word
	for i := range n {
		if i%perWord == 0 && i > 0 {
			word = mix(word)
			left = word
		}
		dst = append(dst, hexes[left&0xf])
		left >>= 4
	}
	return dst
}

// uuids are of version 4, variant 1 (RFC 9562).
func uuids(args []string) (generator, error) {
	const length = 36
	return generator{text: true, bounds: exactly(length), write: func(dst []byte, _ int64, word uint64) []byte {
		dst = append(appendHex(dst, 8, word), '-')
		dst = append(appendHex(dst, 4, word>>32), '-', '4')
		dst = append(appendHex(dst, 3, word>>48), '-', hexes[8|word>>62])
		word = mix(word)
		dst = append(appendHex(dst, 3, word), '-')
		return appendHex(dst, 12, word>>16)
	}}, takes(args, 0, 0, "uuid")
}

func letters(args []string) (generator, error) {
	if err := takes(args, 1, 2, "text N or text MIN MAX"); err != nil {
		return generator{}, err
	}
	low, err := count(args[0])
	high, err2 := count(args[len(args)-1])
	if err := errors.Join(err, err2); err != nil {
		return generator{}, err
	}
	if low > high {
		return generator{}, fmt.Errorf("text needs the smaller length first: %d is above %d", low, high)
	}
	b := Bounds{Min: low, Max: high, Mean: float64(low+high) / 2}
	return generator{text: true, bounds: b, write: func(dst []byte, _ int64, word uint64) []byte {
		extra, _ := bits.Mul64(word, uint64(high-low+1))
		const perWord = 12
		left := uint64(0)
		for i := range low + int(extra) {
			if i%perWord == 0 {
				word = mix(word)
				left = word
			}
			dst = append(dst, 'a'+byte(left&31*26>>5))
			left >>= 5
		}
		return dst
	}}, nil
}

func choices(args []string) (generator, error) {
	if len(args) == 0 {
		return generator{}, errors.New(`is written "choice A B …"`)
	}
	return oneOf(args), nil
}

func oneOf(texts []string) generator {
	list := make([][]byte, len(texts))
	for i, text := range texts {
		list[i] = []byte(text)
	}
	return generator{text: true, list: texts, bounds: linesBounds(list), write: func(dst []byte, _ int64, word uint64) []byte {
		i, _ := bits.Mul64(word, uint64(len(list)))
		return append(dst, list[i]...)
	}}
}
