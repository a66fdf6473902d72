// Likelihood bounds of one group's disparity: all values whose signed root is at most c.
// The same steps as in the package, for one group at a time; parts are disjoint pieces of the
// population, each with its rows and the rows whose metric is 1.

const MEMBERS = {
  known: [[1], [0]],
  overall: [[1, 0], [1, 1]],
  complement: [[1, 0], [0, 1]],
  reference: [[1, 1, 0], [0, 1, 1]],
};
const MAX_STEPS = 120;
const ROUNDS = 40;

const total = (values) => values.reduce((sum, value) => sum + value, 0);
const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
const xlogy = (x, y) => (x === 0 ? 0 : x * Math.log(y));

function band(parts, critical) {
  if (!defined(parts)) return [NaN, NaN];
  const cut = critical * Math.sqrt(parts.calibrated ? bartlett(parts) : 1);
  return [extreme(parts, cut, -1), extreme(parts, cut, 1)];
}

function defined(parts) {
  const [group, target] = MEMBERS[parts.against];
  return dot(parts.rows, group) > 0 && (parts.against === "known" || dot(parts.rows, target) > 0);
}

// Mean of the likelihood ratio of the group's rate, to order 1/n.
function bartlett(parts) {
  const [group] = MEMBERS[parts.against];
  const n = dot(parts.rows, group);
  const rate = (dot(parts.ones, group) + 0.5) / (n + 1);
  const variance = rate * (1 - rate);
  return 1 + (1 - variance) / (6 * Math.max(n, 1) * variance);
}

// Group mean, target and their derivatives at given rates and shares.
function stateAt(parts, rates, shares) {
  const [group, target] = MEMBERS[parts.against];
  const known = parts.against === "known";
  let g = shares.map((share, i) => share * group[i]);
  let t = shares.map((share, i) => share * target[i]);
  const [inGroup, inTarget] = [total(g), Math.max(total(t), 1e-300)];
  g = g.map((x) => x / inGroup);
  t = t.map((x) => x / inTarget);
  const mean = dot(g, rates);
  const theta = parts.scale * (known ? parts.value : dot(t, rates));
  const ratio = theta > 0 ? mean / theta : Infinity;
  const factor = parts.scale * (parts.relative ? Math.min(ratio, 1e9) : 1);
  const at = (i) => Math.max(shares[i], 1e-300);
  return {
    disparity: parts.relative ? ratio : mean - theta,
    byRate: g.map((x, i) => x - (known ? 0 : factor * t[i])),
    byShare: g.map((x, i) => {
      const inner = (x * (rates[i] - mean)) / at(i);
      const outer = (t[i] * (rates[i] - theta / (parts.scale || 1))) / at(i);
      return inner - (known ? 0 : factor * outer);
    }),
  };
}

function curved(parts) {
  return parts.relative || estimatedShares(parts);
}

function estimatedShares(parts) {
  return parts.against === "overall" || parts.against === "reference";
}

function extreme(parts, critical, sign) {
  const n = parts.rows.map((x) => Math.max(x, 1));
  const mean = parts.ones.map((x, i) => x / n[i]);
  let [rates, shares] = start(parts);
  let [guess, found] = [null, NaN];
  for (let round = 0; round < (curved(parts) ? ROUNDS : 1); round += 1) {
    const [a, d] = derivatives(parts, rates, shares, sign);
    guess = multiplier(a, d, parts, mean, shares, critical, guess);
    rates = ratesAt(guess, a, parts, mean);
    if (estimatedShares(parts)) shares = tiltedShares(guess, d, parts, shares);
    const next = stateAt(parts, rates, shares).disparity;
    const settled = Math.abs(next - found) <= 1e-9 * (1 + Math.abs(next)) || (!Number.isFinite(next) && next === found);
    found = next;
    if (settled) break;
  }
  return found;
}

function start(parts) {
  const whole = total(parts.rows);
  const pull = parts.relative ? 0.5 : 0;
  const rates = parts.ones.map((x, i) => (x + pull) / (Math.max(parts.rows[i], 1) + 2 * pull));
  return [rates, parts.rows.map((x) => x / whole)];
}

function derivatives(parts, rates, shares, sign) {
  const state = stateAt(parts, rates, shares);
  const some = (values) => values.map((x, i) => (parts.rows[i] > 0 ? tame(x) : 0) * -sign);
  return [some(state.byRate).map((x) => (Math.abs(x) > 1e-12 ? x : 0)), some(state.byShare)];
}

function tame(x) {
  if (Number.isNaN(x)) return 0;
  if (x === Infinity) return 1e12;
  return x === -Infinity ? -Number.MAX_VALUE : x;
}

function ratesAt(multiplierNow, a, parts, mean) {
  return a.map((x, i) => tilted((multiplierNow * x) / Math.max(parts.rows[i], 1), mean[i])[0]);
}

function tiltedShares(multiplierNow, d, parts, now) {
  const whole = total(parts.rows);
  const middle = dot(d, now);
  const shares = parts.rows.map((x, i) => {
    const weight = Math.max(1 + (multiplierNow * (d[i] - middle)) / whole, 0.05);
    return x / whole / weight;
  });
  const sum = total(shares);
  return shares.map((x) => x / sum);
}

// Likelihood ratio statistic at a multiplier, and its derivative in the multiplier.
function lost(multiplierNow, a, d, parts, mean, now) {
  let [value, fall] = [0, 0];
  a.forEach((x, i) => {
    const n = Math.max(parts.rows[i], 1);
    const [rate, root] = tilted((multiplierNow * x) / n, mean[i]);
    const [k, rest] = [parts.ones[i], parts.rows[i] - parts.ones[i]];
    value += xlogy(k, mean[i]) - xlogy(k, rate) + xlogy(rest, 1 - mean[i]) - xlogy(rest, 1 - rate);
    fall += root > 0 ? (x * x * rate * (1 - rate)) / (n * root) : 0;
  });
  if (estimatedShares(parts)) {
    const whole = total(parts.rows);
    const shares = tiltedShares(multiplierNow, d, parts, now);
    value += total(parts.rows.map((x, i) => xlogy(x, x / whole) - xlogy(x, shares[i])));
    const middle = dot(d, shares);
    fall += total(shares.map((x, i) => x * (d[i] - middle) ** 2)) / whole;
  }
  return [2 * Math.max(value, 0), 2 * multiplierNow * fall];
}

// The multiplier at which the root of the likelihood ratio reaches the critical value.
function multiplier(a, d, parts, mean, now, critical, guess) {
  const spread = a.map((x, i) => {
    const n = Math.max(parts.rows[i], 1);
    const pulled = (parts.ones[i] + 0.5) / (n + 1);
    return (x * x * pulled * (1 - pulled)) / n;
  });
  const most = (1e9 * (1 + total(parts.rows))) / Math.max(...a.map(Math.abs), 1e-12);
  let at = guess ?? critical / Math.max(Math.sqrt(total(spread)), 1e-12);
  let [low, high] = [0, Infinity];
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const [value, slope] = lost(at, a, d, parts, mean, now);
    const root = Math.sqrt(value);
    if (root > critical) high = at;
    else low = at;
    if (!(Math.abs(root - critical) > 1e-10 && low < most && high - low > 1e-14 * at)) break;
    const newton = slope > 0 ? at + (2 * root * (critical - root)) / slope : NaN;
    const middle = high === Infinity ? Math.min(4 * at, most) : (low + high) / 2;
    at = newton > low && newton < Math.min(high, 8 * at + 1) ? newton : middle;
  }
  return at;
}

// The rate with mean − rate = s · rate · (1 − rate), and the root in its formula.
function tilted(s, mean) {
  const one = 1 + s;
  const root = Math.sqrt(Math.max((1 - s) ** 2 + 4 * s * (1 - mean), 0));
  let rate = 0;
  // two forms of the same root, each used where it does not cancel
  if (one < 0) rate = (one - root) / (2 * s);
  else if (one + root > 0) rate = (2 * mean) / (one + root);
  return [Math.min(Math.max(rate, 0), 1), root];
}

// The normal score that intervals of a family are cut at.
function normalCritical(level, family, groups, twoSided) {
  const number = Math.max(groups, 1);
  const miss = {
    pointwise: 1 - level,
    sidak: -Math.expm1(Math.log(level) / number),
    bonferroni: (1 - level) / number,
  }[family];
  return Math.max(upperQuantile(twoSided ? miss / 2 : miss), 0);
}

function upperQuantile(p) {
  let [low, high] = [-40, 40];
  for (let step = 0; step < 200 && high - low > 1e-14 * Math.max(1, Math.abs(high)); step += 1) {
    const middle = (low + high) / 2;
    if (upperTail(middle) > p) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

function upperTail(x) {
  if (x < 0) return 1 - upperTail(-x);
  const density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
  if (x > 3) {
    let below = x;
    for (let term = 200; term > 0; term -= 1) below = x + term / below;
    return density / below;
  }
  let [term, sum] = [x, x];
  for (let odd = 3; term > 1e-18 * sum; odd += 2) {
    term *= (x * x) / odd;
    sum += term;
  }
  return 0.5 - density * sum;
}
