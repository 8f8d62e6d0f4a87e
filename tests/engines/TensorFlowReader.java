/* Asks a SavedModel with TensorFlow for Java: MODEL REQUESTS ANSWERS [OP_LIBRARY...]
 *
 * A file of requests has lines of words: "signature NAME", "tensor NAME DTYPE SHAPE DATA" for each input, and "ask".
 * The file of answers has the same lines for outputs; "signatures NAMES" is its first one. SHAPE is "4,3" ("-" for
 * none), DATA base64 of numbers as little-endian bytes, of texts each with its length before it.
 */
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.tensorflow.Result;
import org.tensorflow.SavedModelBundle;
import org.tensorflow.Tensor;
import org.tensorflow.TensorFlow;
import org.tensorflow.ndarray.NdArrays;
import org.tensorflow.ndarray.Shape;
import org.tensorflow.ndarray.buffer.DataBuffers;
import org.tensorflow.types.TFloat32;
import org.tensorflow.types.TInt64;
import org.tensorflow.types.TString;

public class TensorFlowReader {
    public static void main(String[] words) throws Exception {
        for (String library : Arrays.asList(words).subList(3, words.length)) TensorFlow.loadLibrary(library);
        try (SavedModelBundle model = SavedModelBundle.load(words[0], "serve");
                PrintWriter out = new PrintWriter(words[2], "UTF-8")) {
            out.println("version " + TensorFlow.version());
            out.println("signatures " + String.join(" ", names(model)));
            String signature = null;
            Map<String, Tensor> inputs = new LinkedHashMap<>();
            for (String line : Files.readAllLines(Path.of(words[1]))) {
                String[] parts = line.split(" ", -1);
                switch (parts[0]) {
                    case "signature" -> signature = parts[1];
                    case "tensor" -> inputs.put(parts[1], tensor(parts[2], shape(parts[3]), parts[4]));
                    default -> {
                        out.println("signature " + signature);
                        try (Result result = model.function(signature).call(inputs)) {
                            for (var entry : result) out.println(line(entry.getKey(), entry.getValue()));
                        }
                        inputs.values().forEach(Tensor::close);
                        inputs.clear();
                    }
                }
            }
        }
    }

    static Iterable<String> names(SavedModelBundle model) {
        Map<String, Object> sorted = new TreeMap<>();
        model.signatures().forEach(signature -> sorted.put(signature.key(), signature));
        return sorted.keySet();
    }

    static Shape shape(String text) {
        return text.equals("-")
                ? Shape.scalar()
                : Shape.of(Arrays.stream(text.split(",")).mapToLong(Long::parseLong).toArray());
    }

    static Tensor tensor(String dtype, Shape shape, String data) {
        ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(data)).order(ByteOrder.LITTLE_ENDIAN);
        int size = (int) shape.size();
        if (dtype.equals("float32")) {
            float[] values = new float[size];
            bytes.asFloatBuffer().get(values);
            return TFloat32.tensorOf(shape, DataBuffers.of(values));
        }
        if (!dtype.equals("string")) throw new IllegalArgumentException(dtype);
        byte[][] texts = new byte[size][];
        for (int i = 0; i < size; i++) {
            texts[i] = new byte[bytes.getInt()];
            bytes.get(texts[i]);
        }
        return TString.tensorOfBytes(NdArrays.wrap(shape, DataBuffers.ofObjects(texts)));
    }

    static String line(String name, Tensor tensor) {
        String dtype;
        ByteBuffer bytes;
        if (tensor instanceof TFloat32 floats) {
            dtype = "float32";
            bytes = room(4 * tensor.size());
            floats.scalars().forEach(one -> bytes.putFloat(one.getFloat()));
        } else if (tensor instanceof TInt64 longs) {
            dtype = "int64";
            bytes = room(8 * tensor.size());
            longs.scalars().forEach(one -> bytes.putLong(one.getLong()));
        } else {
            dtype = "string";
            long[] length = {0};
            var texts = ((TString) tensor).asBytes();
            texts.scalars().forEach(one -> length[0] += 4 + one.getObject().length);
            bytes = room(length[0]);
            texts.scalars().forEach(one -> bytes.putInt(one.getObject().length).put(one.getObject()));
        }
        long[] sizes = tensor.shape().asArray();
        String shape = sizes.length == 0 ? "-" : Arrays.toString(sizes).replaceAll("[\\[\\] ]", "");
        String data = Base64.getEncoder().encodeToString(bytes.array());
        return String.join(" ", "tensor", name, dtype, shape, data);
    }

    static ByteBuffer room(long size) {
        return ByteBuffer.allocate((int) size).order(ByteOrder.LITTLE_ENDIAN);
    }
}
